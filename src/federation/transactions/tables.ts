/** The table of transactions that other servers have sent. */
export interface TransactionTables {
  received_transactions: {
    origin: string;
    txn_id: string;
    /** Milliseconds since the epoch. */
    received_ts: number;
    /** What was answered, as JSON. */
    answer: string;
  };
}
