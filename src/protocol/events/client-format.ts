import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';

/** An event as clients see it. Source: client-server API, "Room event format". */
export interface ClientEvent extends JsonObject {
  readonly type: string;
  readonly event_id: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: JsonObject;
}

/**
 * An event for clients, where the room is known from around it, as in a sync.
 * @param unsigned What the server adds for this reader: `age`, `transaction_id`, `prev_content`, `m.relations`...
 */
export function clientEventWithoutRoomId(event: RoomEvent, unsigned?: JsonObject): ClientEvent {
  const { redacts } = event;
  return {
    type: event.type,
    content: redacts === undefined ? event.content : contentWithRedacts(event, redacts),
    event_id: event.eventId,
    sender: event.sender,
    origin_server_ts: event.originServerTs,
    ...(event.stateKey === undefined ? undefined : { state_key: event.stateKey }),
    // Clients of either age look for it in either place, whatever the room version (room version 11, "Moving the
    // redacts property").
    ...(redacts === undefined ? undefined : { redacts }),
    ...(unsigned === undefined ? undefined : { unsigned }),
  };
}

/** An event for clients and application services, on its own. @param unsigned as above */
export function clientEvent(event: RoomEvent, unsigned?: JsonObject): ClientEvent {
  return { ...clientEventWithoutRoomId(event, unsigned), room_id: event.roomId };
}

function contentWithRedacts(event: RoomEvent, redacts: string): JsonObject {
  return event.content.redacts === redacts ? event.content : { ...event.content, redacts };
}
