/** The tables of the directories. Flags are 0 or 1. */
export interface DirectoryTables {
  /** Description of each room, updated by a follower. */
  room_stats: {
    room_nid: number;
    room_id: string;
    name: string | null;
    topic: string | null;
    canonical_alias: string | null;
    avatar_url: string | null;
    join_rule: string;
    history_visibility: string;
    guest_can_join: number;
    room_type: string | null;
    encryption: string | null;
    version: string;
    creator: string;
    federatable: number;
    joined_members: number;
    joined_local_members: number;
    invited_members: number;
    state_events: number;
    /** Name, alias and topic, in the form that `foldText` returns. */
    search_text: string;
  };
  /**
   * The values that lists of rooms are sorted and searched by, updated together with `room_stats`. They do not change
   * when users join or leave, so few changes of a room write the indexes of this table. Sorted texts are cut after 200
   * characters.
   */
  listed_rooms: {
    room_id: string;
    name: string;
    canonical_alias: string;
    version: string;
    creator: string;
    encryption: string;
    join_rule: string;
    history_visibility: string;
    federatable: number;
    guest_can_join: number;
    /** The whole name and the localpart of the alias, on a line each, in lower case. */
    search_text: string;
  };
  /** The servers with joined users in each room, updated together with `room_stats`. */
  room_servers: {
    server_name: string;
    room_id: string;
  };
  /** Users in the directory. */
  user_directory: {
    user_id: string;
    /** Number of the user in the full text index. */
    nid: number;
    display_name: string | null;
    avatar_url: string | null;
  };
}
