/** The tables of profiles. */
export interface ProfileTables {
  profile_fields: {
    user_id: string;
    /** `displayname`, `avatar_url`, `m.tz` or a custom name. */
    field: string;
    /** JSON. */
    value: string;
  };
  /** The texts for searching and sorting lists of users: one row for each local account. */
  listed_profiles: {
    user_id: string;
    /** JSON; empty for users without a name. */
    displayname: string;
    /** The first 200 characters of the JSON; empty for users without an avatar. */
    avatar_url: string;
    /** The localpart and the display name, on a line each, in lower case. */
    search_text: string;
  };
}
