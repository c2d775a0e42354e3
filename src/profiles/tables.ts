/** The tables of profiles. */
export interface ProfileTables {
  profile_fields: {
    user_id: string;
    /** `displayname`, `avatar_url`, `m.tz` or a custom name. */
    field: string;
    /** JSON. */
    value: string;
  };
}
