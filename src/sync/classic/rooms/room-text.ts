import { TextBuilder } from '../../../kernel/http/index.ts';
import type { JsonObject } from '../../../protocol/index.ts';
import type { StateAfter } from '../recipient.ts';
import type { Timeline } from './timeline.ts';

/** The parts of a joined room's entry; lists hold events as JSON text. */
export interface JoinedRoomPieces {
  readonly timeline: string;
  /** The state events; where there are many, a builder with the texts of all of them. */
  readonly state: readonly string[] | TextBuilder;
  readonly stateAfter: StateAfter | undefined;
  readonly ephemeral: readonly string[];
  readonly accountData: readonly string[];
  /** Unread counts: fields of the entry as JSON text, each with a comma in front. */
  readonly counts: readonly string[];
  readonly summary: JsonObject | undefined;
}

/** The entry of a room as JSON text; a builder where its state is long. */
export type EntryText = string | TextBuilder;

/** Returns the entry of a joined room. */
export function joinedRoomText(pieces: JoinedRoomPieces): EntryText {
  const { timeline, state, stateAfter, ephemeral, accountData, counts, summary } = pieces;
  const start = `{"timeline":${timeline},`;
  const end =
    `,"ephemeral":{"events":[${ephemeral.join(',')}]},` +
    `${accountDataText(accountData)}${counts.join('')}` +
    `${summary ? `,"summary":${JSON.stringify(summary)}` : ''}}`;
  if (!(state instanceof TextBuilder)) return start + stateText(state, stateAfter) + end;
  const text = new TextBuilder();
  text.add(`${start}"${stateAfter ?? 'state'}":{"events":[`);
  text.append(state);
  text.add(`]}${end}`);
  return text;
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
