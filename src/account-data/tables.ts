/** The tables of account data. */
export interface AccountDataTables {
  account_data: {
    user_id: string;
    /** Empty for global account data. */
    room_id: string;
    type: string;
    /** JSON object. */
    content: string;
    /** Stream position of the last change. */
    position: number;
  };
}
