/** The table of server notices. */
export interface ServerNoticeTables {
  server_notice_rooms: {
    /** Recipient of the notices. */
    user_id: string;
    /** The user's latest notice room. */
    room_id: string;
  };
}
