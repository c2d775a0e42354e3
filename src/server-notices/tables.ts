/** The table of server notices. */
export interface ServerNoticeTables {
  server_notice_rooms: {
    /** Whom the server talks to. */
    user_id: string;
    /** Where. */
    room_id: string;
  };
}
