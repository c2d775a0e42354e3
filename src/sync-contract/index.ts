/** The interfaces that a slice implements to contribute data to every kind of sync. */

export {
  defineExtension,
  type Extension,
  type ExtensionAnswer,
  type ExtensionRoom,
  type RoomExtension,
} from './extensions.ts';
export type { FactStream, FeedWriter } from './feed-writer.ts';
export type {
  AccountDataItem,
  AccountDataSection,
  DeviceQueue,
  DeviceRef,
  DeviceSection,
  EphemeralSection,
  PresenceSection,
  Range,
  RoomCounts,
  SenderFilter,
} from './sections.ts';
export type { SyncSource } from './sync-source.ts';
