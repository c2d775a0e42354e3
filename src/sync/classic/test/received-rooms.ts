import type {
  ClientEventJson,
  JoinedRoomJson,
  SyncJson,
} from '../../../../test/support/users/test-client.ts';

type Counts = Readonly<Record<string, number>>;

type RoomJson = JoinedRoomJson & {
  readonly unread_thread_notifications?: Readonly<Record<string, Counts>>;
};

type Receipts = Readonly<Record<string, Record<string, Record<string, { thread_id?: string }>>>>;

/** The data of one room that a client has received in its syncs. */
export class ReceivedRoom {
  events: ClientEventJson[] = [];
  /** Whether events before the first of `events` are missing. */
  isLimited = false;
  /** Event ids of receipts, by a JSON list of user, type and thread. */
  readonly receipts = new Map<string, string>();
  typingUsers: readonly string[] = [];
  unread: Counts = {};
  unreadThreads: Readonly<Record<string, Counts>> = {};

  apply(room: RoomJson): void {
    if (room.timeline.limited) {
      this.events = [];
      this.isLimited = true;
    }
    this.events.push(...room.timeline.events);
    this.unread = room.unread_notifications;
    this.unreadThreads = room.unread_thread_notifications ?? {};
    for (const { type, content } of room.ephemeral.events) {
      if (type === 'm.typing') this.typingUsers = content['user_ids'] as string[];
      else this.#applyReceipts(content as Receipts);
    }
  }

  #applyReceipts(content: Receipts): void {
    for (const [eventId, byType] of Object.entries(content)) {
      for (const [type, byUser] of Object.entries(byType)) {
        for (const [userId, { thread_id }] of Object.entries(byUser))
          this.receipts.set(JSON.stringify([userId, type, thread_id]), eventId);
      }
    }
  }
}

/** The data of all rooms that a client has received in its syncs. */
export class ReceivedRooms {
  readonly #rooms = new Map<string, ReceivedRoom>();

  /** Adds the rooms of an answer. */
  apply({ rooms }: SyncJson): void {
    for (const [roomId, room] of Object.entries(rooms?.join ?? {})) this.in(roomId).apply(room);
  }

  /** Returns the data of a room. */
  in(roomId: string): ReceivedRoom {
    const room = this.#rooms.get(roomId) ?? new ReceivedRoom();
    this.#rooms.set(roomId, room);
    return room;
  }
}
