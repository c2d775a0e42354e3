import type { JsonObject } from '../../../protocol/index.ts';
import type { StateAfter } from '../recipient.ts';
import type { Timeline } from './timeline.ts';

/** The parts of a joined room's entry; lists hold events as JSON text. */
export interface JoinedRoomPieces {
  readonly timeline: string;
  readonly state: readonly string[];
  readonly stateAfter: StateAfter | undefined;
  readonly ephemeral: readonly string[];
  readonly accountData: readonly string[];
  /** Unread counts: fields of the entry as JSON text, each with a comma in front. */
  readonly counts: readonly string[];
  readonly summary: JsonObject | undefined;
}

/** Returns the entry of a joined room as JSON text. */
export function joinedRoomText(pieces: JoinedRoomPieces): string {
  return (
    `{"timeline":${pieces.timeline},${stateText(pieces.state, pieces.stateAfter)},` +
    `"ephemeral":{"events":[${pieces.ephemeral.join(',')}]},` +
    `${accountDataText(pieces.accountData)}${pieces.counts.join('')}` +
    `${pieces.summary ? `,"summary":${JSON.stringify(pieces.summary)}` : ''}}`
  );
}

/** Returns the `account_data` field. @param events as JSON text */
export const accountDataText = (events: readonly string[]): string =>
  `"account_data":{"events":[${events.join(',')}]}`;

/** Returns the field with the state events. @param events as JSON text */
export function stateText(events: readonly string[], after: StateAfter | undefined): string {
  return `"${after ?? 'state'}":{"events":[${events.join(',')}]}`;
}

/** Returns the value of the `timeline` field. @param texts the events of the timeline as JSON text */
export function timelineText(
  timeline: Pick<Timeline, 'limited' | 'prevBatch'> | undefined,
  texts: readonly string[],
): string {
  if (!timeline) return '{"events":[],"limited":false}';
  return `{"events":[${texts.join(',')}],"limited":${timeline.limited},"prev_batch":"${timeline.prevBatch}"}`;
}
