import type { JsonObject } from '../../../protocol/index.ts';

/** The parts of a room's entry; lists hold events as JSON text. Source: MSC4186, `RoomResult`. */
export interface RoomPieces {
  readonly fields: JsonObject;
  readonly requiredState?: readonly string[];
  readonly timeline?: readonly string[];
  readonly strippedState?: readonly string[];
}

/** Returns the entry of a room in an answer, as JSON text. */
export function roomText({ fields, requiredState, timeline, strippedState }: RoomPieces): string {
  const lists = [
    listText('required_state', requiredState),
    listText('timeline', timeline),
    // In the unstable endpoint, `invite_state` holds the stripped state of knocks as well.
    listText('invite_state', strippedState),
  ].filter((text) => text !== undefined);
  const fieldsText = JSON.stringify(fields).slice(1, -1);
  return `{${(fieldsText === '' ? lists : [fieldsText, ...lists]).join(',')}}`;
}

function listText(name: string, events: readonly string[] | undefined): string | undefined {
  return events && events.length > 0 ? `"${name}":[${events.join(',')}]` : undefined;
}
