import type { JsonObject } from '../protocol/index.ts';

/** What other slices contribute to a sync; declared here, supplied at composition. */
export interface SyncSources {
  readonly receipts: {
    /** Content of the `m.receipt` event with what changed in `(after, upTo]`; `undefined`: nothing. */
    contentSince(
      roomId: string,
      after: number,
      upTo: number,
      userId: string,
    ): Promise<JsonObject | undefined>;
    contentAll(roomId: string, userId: string): Promise<JsonObject | undefined>;
  };
  readonly typing: {
    inRoom(roomId: string): readonly string[];
  };
  readonly unread: {
    counts(userId: string, roomId: string, upTo: number): Promise<UnreadCounts>;
  };
  readonly accountData: {
    /** Events `{type, content}` outside of rooms (`roomId` undefined) or of one room, changed in `(after, upTo]`. */
    changesSince(userId: string, after: number, upTo: number): Promise<readonly AccountDataEvent[]>;
    all(userId: string): Promise<readonly AccountDataEvent[]>;
  };
}

export interface AccountDataEvent {
  readonly roomId: string | undefined;
  readonly type: string;
  readonly content: JsonObject;
}

export interface UnreadCounts {
  readonly notification_count: number;
  readonly highlight_count: number;
  /** By the root event of the thread. */
  readonly threads: ReadonlyMap<string, { notification_count: number; highlight_count: number }>;
}
