/** The tables of account data. */
export interface AccountDataTables {
  account_data: {
    user_id: string;
    /** Empty for what does not belong to a room. */
    room_id: string;
    type: string;
    /** JSON object. */
    content: string;
    /** Where it was set last on the stream. */
    position: number;
  };
}
