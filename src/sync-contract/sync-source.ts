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
 * What one slice contributes to syncs: the classic sync, simplified sliding sync and the older event stream all iterate
 * over the list of sources, which composition makes. The list gives each source a bit of the feeds, so that a sync asks
 * only the sources that may have something new. A source fills one section of an answer, or several.
 */
export interface SyncSource {
  /** Names the source in errors and tests, in words of its own. */
  readonly name: string;
  /** Follows the streams of the source, so that its facts reach the feeds of the users whom they concern. */
  follow(feeds: FeedWriter): void;
  /** Events in `ephemeral` of joined rooms, and in a sliding sync extension about rooms. */
  readonly ephemeral?: EphemeralSection;
  /** Entries in `account_data`, of the user and of rooms, and in the sliding sync extension `account_data`. */
  readonly accountData?: AccountDataSection;
  /** Events in `presence`. Sliding sync has none. */
  readonly presence?: PresenceSection;
  /** Messages that wait for a device until it has acknowledged them. One source at most has such a queue. */
  readonly deviceQueue?: DeviceQueue;
  /** Members at the top of an answer that are about one device, also those of a sliding sync extension. */
  readonly device?: DeviceSection;
  /** Members of a joined room's entry that count what is unread. */
  readonly roomCounts?: RoomCounts;
  /** A sliding sync extension that has no counterpart in the classic sync. */
  readonly extension?: Extension;
}
