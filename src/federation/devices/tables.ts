/** The tables of what other servers were told of the devices of local users. */
export interface AnnouncementTables {
  /** The last update of each local user's device list: the next one follows it. */
  announced_device_lists: {
    user_id: string;
    /** The `stream_id` of the update. */
    stream_id: number;
    /** The one before it; null for the first. */
    previous: number | null;
    /** The device that it was about. */
    device_id: string;
  };
}
