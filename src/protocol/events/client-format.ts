import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';

/** An event in the format for clients. Source: client-server API, "Room event format". */
export interface ClientEvent extends JsonObject {
  readonly type: string;
  readonly event_id: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: JsonObject;
}

/**
 * Returns an event for clients without `room_id`, for responses that group events by room, as /sync does.
 * @param unsigned what the server adds for this user: `age`, `transaction_id`, `prev_content`,
 * `m.relations`...
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
    // Written at both places in every room version, because older and newer clients each read one of them
    // (room version 11, "Moving the redacts property").
    ...(redacts === undefined ? undefined : { redacts }),
    ...(unsigned === undefined ? undefined : { unsigned }),
  };
}

/**
 * Returns an event for clients and application services, with `room_id`.
 * @param unsigned as in `clientEventWithoutRoomId`
 */
export function clientEvent(event: RoomEvent, unsigned?: JsonObject): ClientEvent {
  return { ...clientEventWithoutRoomId(event, unsigned), room_id: event.roomId };
}

function contentWithRedacts(event: RoomEvent, redacts: string): JsonObject {
  return event.content.redacts === redacts ? event.content : { ...event.content, redacts };
}
