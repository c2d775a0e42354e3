/** The tables of presence. */
export interface PresenceTables {
  /** How present users were when it was last written down, which is a while after it changed. */
  presence: {
    user_id: string;
    presence: string;
    status_msg: string | null;
    /** Milliseconds since the epoch. */
    last_active: number;
  };
}
