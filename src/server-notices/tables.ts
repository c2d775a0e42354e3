/** The tables of server notices. */
export interface ServerNoticeTables {
  server_notice_rooms: {
    /** Recipient of the notices. */
    user_id: string;
    /** The user's latest notice room. */
    room_id: string;
  };
  /** Users who were asked to agree to the policy. */
  consent_notices: {
    user_id: string;
    /** Version of the policy that the last notice was about. */
    version: string;
  };
}
