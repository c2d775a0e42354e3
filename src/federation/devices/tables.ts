/** Tables of device list updates announced to other servers. */
export interface AnnouncementTables {
  /** The last announced update of each local user's device list. The next update refers to it. */
  announced_device_lists: {
    user_id: string;
    /** `stream_id` of the update. */
    stream_id: number;
    /** `stream_id` of the previous update; null for the first update. */
    previous: number | null;
    /** The device of the update. */
    device_id: string;
  };
}
