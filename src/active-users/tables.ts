/** The table of monthly active users. */
export interface ActiveUserTables {
  monthly_active_users: {
    user_id: string;
    /** Milliseconds since the epoch; up to an hour before the user's last request. */
    active_at: number;
    /** Id of the application service that created the account; null for other accounts. */
    appservice_id: string | null;
  };
}
