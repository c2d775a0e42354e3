import { type Mail, type Mails, plainName } from '../../mail/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { RoomView } from '../../rooms/index.ts';
import type { RoomContent, ShownRoom } from '../names/room-content.ts';
import type { Pusher } from '../pusher.ts';
import type { PendingPush } from '../queue/pending-pushes.ts';
import { clientLink } from './client-links.ts';
import { type RoomInSubject, subjectOf } from './mail-subject.ts';
import { messageText } from './message-text.ts';
import { type Avatars, Pictures } from './pictures.ts';
import type { UnsubscribeLinks } from './unsubscribe-links.ts';

/** A pending event that still notifies the user. */
export interface UnreadEvent {
  readonly push: PendingPush;
  readonly stored: StoredEvent;
}

export interface NotificationMailDeps {
  readonly engine: RoomReader;
  readonly rooms: RoomContent;
  readonly mails: Mails;
  readonly links: UnsubscribeLinks;
  readonly avatars: Avatars | undefined;
}

/** Maximum number of rooms in a mail. */
const maxRooms = 10;

/** Maximum number of events of one room that a mail shows. The message before each of these events does not count. */
const maxEvents = 10;

/** A room in a mail: what the subject needs of the room, and the values for the template of the mail. */
interface RoomInMail {
  readonly subject: RoomInSubject;
  readonly values: JsonObject;
}

/** Writes the mails about missed events. */
export class NotificationMails {
  readonly #deps: NotificationMailDeps;

  constructor(deps: NotificationMailDeps) {
    this.#deps = deps;
  }

  /**
   * Writes the mail about all unread events of a user.
   * @param cause the event that caused the mail
   * @param events in the order of the stream
   */
  async compose(pusher: Pusher, cause: UnreadEvent, events: readonly UnreadEvent[]): Promise<Mail> {
    const { mails, links, avatars } = this.#deps;
    const pictures = new Pictures(avatars);
    const byRoom = Map.groupBy(events, ({ push }) => push.roomId);
    // The room that caused the mail comes first, then the rooms with the newest events.
    const newestPosition = (roomId: string) => byRoom.get(roomId)?.at(-1)?.push.stream ?? 0;
    const { roomId: causingRoom } = cause.push;
    const otherRoomIds = [...byRoom.keys()].filter((roomId) => roomId !== causingRoom);
    const roomIds = [causingRoom, ...otherRoomIds.sort((a, b) => newestPosition(b) - newestPosition(a))];
    const rooms: RoomInMail[] = [];
    for (const roomId of roomIds.slice(0, maxRooms)) {
      rooms.push(await this.#room(pusher, roomId, byRoom.get(roomId) ?? [], pictures));
    }
    const subjects = rooms.map(({ subject }) => subject);
    const { template, values } = subjectOf(mails.options.subjects, subjects[0]!, subjects);
    const unsubscribe = links.of(pusher);
    return {
      to: pusher.pushkey,
      html: 'notif_mail.html',
      text: 'notif_mail.txt',
      subject: template,
      subjectValues: values,
      values: {
        rooms: rooms.map((room) => room.values),
        event_count: events.length,
        more_rooms: Math.max(0, roomIds.length - maxRooms),
        unsubscribe_link: unsubscribe,
      },
      images: pictures.images,
      headers: {
        'List-Unsubscribe': `<${unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    };
  }

  async #room(
    { userId }: Pusher,
    roomId: string,
    events: readonly UnreadEvent[],
    pictures: Pictures,
  ): Promise<RoomInMail> {
    const { rooms, mails } = this.#deps;
    const base = mails.options.client_base_url;
    const room = await rooms.room(roomId, userId);
    const title = plainName(room?.title ?? roomId);
    const isInvite = room?.membership === 'invite';
    const senderIds = [...new Set(events.map(({ stored }) => stored.event.sender))];
    const senders = await Promise.all(
      senderIds.map(async (sender) => plainName((await rooms.member(roomId, sender, userId)).name)),
    );
    const messages = room && !isInvite ? await this.#messages(userId, room, events, pictures) : [];
    return {
      subject: { name: room?.name, isInvite, senders, count: events.length },
      values: {
        title,
        link: clientLink(base, roomId),
        picture: await pictures.of(roomId, title, room?.avatarUrl),
        is_invite: isInvite,
        is_named: room?.name !== undefined,
        is_space: room?.isSpace ?? false,
        inviter: senders[0] ?? '',
        messages,
        more_messages: isInvite ? 0 : Math.max(0, events.length - maxEvents),
      },
    };
  }

  /** Returns the newest events that notify the user, each with the message before it. */
  async #messages(
    userId: string,
    { isEncrypted }: ShownRoom,
    events: readonly UnreadEvent[],
    pictures: Pictures,
  ): Promise<JsonObject[]> {
    const { rooms, mails } = this.#deps;
    const shownEvents = new Map<number, { stored: StoredEvent; isOld: boolean }>();
    for (const { push, stored } of events.slice(-maxEvents)) {
      const before = await this.#messageBefore(stored, userId);
      if (before && !shownEvents.has(before.nid))
        shownEvents.set(before.nid, { stored: before, isOld: true });
      // Replaces the entry of an event that was first added as the message before another one.
      shownEvents.set(push.nid, { stored, isOld: false });
    }
    const messages: JsonObject[] = [];
    for (const { stored, isOld } of shownEvents.values()) {
      const { event } = stored;
      const text = messageText(event.type, event.content, isEncrypted);
      if (text === undefined && isOld) continue;
      const sender = await rooms.member(event.roomId, event.sender, userId);
      messages.push({
        sender: plainName(sender.name),
        picture: await pictures.of(event.sender, sender.name, sender.avatarUrl),
        text: text ?? 'Sent something that this mail cannot show',
        is_emote: event.type === 'm.room.message' && event.content['msgtype'] === 'm.emote' && !isEncrypted,
        is_old: isOld,
        time: timeText(event.originServerTs),
        link: clientLink(mails.options.client_base_url, event.roomId, event.eventId),
      });
    }
    return messages;
  }

  /** Returns the event before another one in the timeline, if the user may see it and it is not redacted. */
  async #messageBefore(
    { roomNid, event, stream }: StoredEvent,
    userId: string,
  ): Promise<StoredEvent | undefined> {
    const { engine } = this.#deps;
    const head = await engine.heads.get(event.roomId);
    if (!head || stream === undefined) return undefined;
    const range = { before: stream, limit: 1, direction: 'backward' } as const;
    const precedingEvents = await engine.events.timeline(roomNid, range);
    const view = await RoomView.open(engine, head, userId);
    const [visible] = await view.displayable(
      precedingEvents.filter(({ redactedBy }) => redactedBy === undefined),
    );
    return visible && !visible.isErased ? visible.stored : undefined;
  }
}

/** Formats a time of milliseconds since the epoch, for example as `23 Nov, 14:05 UTC`. */
function timeText(ts: number): string {
  const isDate = Number.isFinite(ts) && Math.abs(ts) <= 8.64e15;
  const [, day, month, , time = ''] = new Date(isDate ? ts : 0).toUTCString().split(' ');
  return `${Number(day)} ${month}, ${time.slice(0, 5)} UTC`;
}
