import type { JsonObject } from '../../../protocol/index.ts';
import type { UnreadCounts } from '../../../push/index.ts';
import type { StateAfter } from '../subject.ts';
import type { Timeline } from './timeline.ts';

/** The pieces of a joined room in a sync; lists hold events as JSON text. */
export interface JoinedRoomPieces {
  readonly timeline: string;
  readonly state: readonly string[];
  readonly stateAfter: StateAfter | undefined;
  readonly ephemeral: readonly string[];
  readonly accountData: readonly string[];
  readonly unread: UnreadCounts;
  /** Count threads by themselves. */
  readonly withThreads: boolean;
  readonly summary: JsonObject | undefined;
}

export function joinedRoomText(pieces: JoinedRoomPieces): string {
  return (
    `{"timeline":${pieces.timeline},${stateText(pieces.state, pieces.stateAfter)},` +
    `"ephemeral":{"events":[${pieces.ephemeral.join(',')}]},` +
    `${accountDataText(pieces.accountData)},` +
    `${unreadText(pieces.unread, pieces.withThreads)}` +
    `${pieces.summary ? `,"summary":${JSON.stringify(pieces.summary)}` : ''}}`
  );
}

/** @param events as JSON text */
export const accountDataText = (events: readonly string[]): string =>
  `"account_data":{"events":[${events.join(',')}]}`;

export function stateText(events: readonly string[], after: StateAfter | undefined): string {
  return `"${after ?? 'state'}":{"events":[${events.join(',')}]}`;
}

/** @param texts the events of the timeline, ready for the client */
export function timelineText(
  timeline: Pick<Timeline, 'limited' | 'prevBatch'> | undefined,
  texts: readonly string[],
): string {
  if (!timeline) return '{"events":[],"limited":false}';
  return `{"events":[${texts.join(',')}],"limited":${timeline.limited},"prev_batch":"${timeline.prevBatch}"}`;
}

function unreadText({ notification_count, highlight_count, threads }: UnreadCounts, withThreads: boolean) {
  let [notifications, highlights] = [notification_count, highlight_count];
  if (!withThreads) {
    for (const thread of threads.values()) {
      notifications += thread.notification_count;
      highlights += thread.highlight_count;
    }
  }
  const threadText =
    withThreads && threads.size > 0
      ? `,"unread_thread_notifications":${JSON.stringify(Object.fromEntries(threads))}`
      : '';
  return `"unread_notifications":{"notification_count":${notifications},"highlight_count":${highlights}}${threadText}`;
}
