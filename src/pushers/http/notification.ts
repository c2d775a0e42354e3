import type { JsonObject } from '../../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { RoomContent } from '../names/room-content.ts';
import type { NotifiedUsers } from '../notified-users.ts';
import type { Pusher } from '../pusher.ts';
import type { PendingPush } from '../queue/pending-pushes.ts';

export interface NotificationDeps {
  readonly engine: Pick<RoomReader, 'events'>;
  readonly notified: NotifiedUsers;
  readonly rooms: RoomContent;
  /** `push.include_content`: when false, gateways receive ids only. */
  readonly includeContent: boolean;
}

/** An event that notifies a user. */
export interface NotifyingEvent {
  readonly stored: StoredEvent;
  /** The tweaks of the push rule that matches. */
  readonly tweaks: JsonObject;
}

/** The `format` of pushers that send only ids to their gateways. Source: push gateway API, "Homeserver behaviour". */
const idsOnly = 'event_id_only';

/** Reports whether the client wants no unread counts. Source: MSC4076. */
export const hidesCounts = ({ data }: Pick<Pusher, 'data'>): boolean =>
  data['org.matrix.msc4076.disable_badge_count'] === true;

/** Builds the notifications that push gateways receive. Source: push gateway API, `POST /notify`. */
export class Notifications {
  readonly #deps: NotificationDeps;

  constructor(deps: NotificationDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the event of a pending push, with the tweaks of the push rule that matches; `undefined` when the event does
   * not notify the user any more: it was read, answered, redacted or deleted, or the user has left the room.
   */
  async event({ nid, userId }: PendingPush): Promise<NotifyingEvent | undefined> {
    const { engine, notified } = this.#deps;
    const stored = await engine.events.get(nid);
    const notification = stored && (await notified.ofPending(stored, userId));
    return notification && { stored, tweaks: notification.tweaks };
  }

  /** Builds the notification of an event. @param unread `undefined` when the client wants no counts */
  async ofEvent(
    pusher: Pusher,
    push: PendingPush,
    { stored: { event }, tweaks }: NotifyingEvent,
    unread: number | undefined,
  ): Promise<JsonObject> {
    const hasHighPriority =
      event.type === 'm.room.encrypted' || isSet(tweaks['highlight']) || isSet(tweaks['sound']);
    const ids = {
      event_id: event.eventId,
      room_id: push.roomId,
      prio: hasHighPriority ? 'high' : 'low',
      ...countsOf(unread),
    };
    const { format } = pusher.data;
    if (format === idsOnly || !this.#deps.includeContent) {
      // Tweaks are left out, because they reveal a part of the content, for instance that it mentions the
      // user.
      return { notification: { ...ids, devices: [deviceOf(pusher)] } };
    }
    const [room, sender] = await Promise.all([
      this.#deps.rooms.room(push.roomId, pusher.userId),
      this.#deps.rooms.member(push.roomId, event.sender, pusher.userId),
    ]);
    const isMembership = event.type === 'm.room.member' && event.stateKey !== undefined;
    // A room with one other user is not named, because its name would repeat the name of the sender.
    const roomName = room && (room.name ?? (room.otherMemberCount > 1 ? room.title : undefined));
    return {
      notification: {
        ...ids,
        id: event.eventId,
        type: event.type,
        sender: event.sender,
        sender_display_name: sender.name,
        ...(roomName !== undefined && { room_name: roomName }),
        ...(isMembership && {
          membership: event.content['membership'] ?? null,
          user_is_target: event.stateKey === pusher.userId,
        }),
        content: event.content,
        devices: [deviceOf(pusher, tweaks)],
      },
    };
  }

  /** Builds the notification of a changed unread count; it names no event. */
  ofBadge(pusher: Pusher, unread: number): JsonObject {
    return { notification: { prio: 'low', ...countsOf(unread), devices: [deviceOf(pusher)] } };
  }
}

/**
 * A count of zero is sent as well, although the specification says to leave it out: gateways take a missing count for
 * an unchanged one, and the badge of an app would stay. The reference server does the same.
 */
const countsOf = (unread: number | undefined) => (unread === undefined ? {} : { counts: { unread } });

const isSet = (tweak: unknown): boolean => tweak !== undefined && tweak !== false && tweak !== null;

function deviceOf({ appId, pushkey, setAt, data }: Pusher, tweaks?: JsonObject): JsonObject {
  const { url: _url, ...dataWithoutUrl } = data;
  return {
    app_id: appId,
    pushkey,
    pushkey_ts: Math.floor(setAt / 1_000),
    data: dataWithoutUrl,
    ...(tweaks && { tweaks }),
  };
}
