/** The tables of presence. */
export interface PresenceTables {
  /** The last stored presence of users; stored up to a minute after it changed. */
  presence: {
    user_id: string;
    presence: string;
    status_msg: string | null;
    /** Milliseconds since the epoch. */
    last_active: number;
  };
}
