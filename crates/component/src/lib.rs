//! What every daemon needs: stores of watched objects, work queues, events, patches.
