/** Transactions received from other servers. */
export interface TransactionTables {
  received_transactions: {
    origin: string;
    txn_id: string;
    /** Milliseconds since the epoch. */
    received_ts: number;
    /** The response as JSON. */
    answer: string;
  };
}
