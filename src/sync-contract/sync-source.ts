import type { Extension } from './extensions.ts';
import type { FeedWriter } from './feed-writer.ts';
import type {
  AccountDataSection,
  DeviceQueue,
  DeviceSection,
  EphemeralSection,
  PresenceSection,
  RoomCounts,
} from './sections.ts';

/**
 * The data that one slice contributes to syncs: the classic sync, simplified sliding sync and the older event
 * stream all iterate over the list of sources, which composition makes. The list assigns to each source a bit of
 * the feeds, so that a sync calls only the sources that may have new data. A source fills one section of a
 * response, or several.
 */
export interface SyncSource {
  /** Names the source in errors and tests. */
  readonly name: string;
  /** Follows the streams of the source, so that its facts reach the feeds of the users whom they concern. */
  follow(feeds: FeedWriter): void;
  /** Events in `ephemeral` of joined rooms, and in a sliding sync extension about rooms. */
  readonly ephemeral?: EphemeralSection;
  /** Entries in `account_data`, of the user and of rooms, and in the sliding sync extension `account_data`. */
  readonly accountData?: AccountDataSection;
  /** Events in `presence`. Sliding sync has none. */
  readonly presence?: PresenceSection;
  /**
   * Pending messages of a device, until the device has acknowledged them. At most one source has such a
   * queue.
   */
  readonly deviceQueue?: DeviceQueue;
  /** Top-level fields of a response that concern one device, which a sliding sync extension has as well. */
  readonly device?: DeviceSection;
  /** Unread counts in the entry of a joined room. */
  readonly roomCounts?: RoomCounts;
  /** A sliding sync extension without a counterpart in the classic sync. */
  readonly extension?: Extension;
}
