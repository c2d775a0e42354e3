import { createClient, type MatrixClient, type MatrixEvent, type Room } from 'matrix-js-sdk';
import { type MSC3575List, SlidingSync } from 'matrix-js-sdk/lib/sliding-sync.js';
import { eventually } from '../eventually.ts';
import { register, uniqueName } from './session.ts';

/**
 * The state requested for each room: all state events except memberships, and the memberships of the user and of the
 * senders of returned events.
 */
const requiredState: [type: string, stateKey: string][] = [
  ['*', '*'],
  ['m.room.member', '$LAZY'],
  ['m.room.member', '$ME'],
];

const room = { timeline_limit: 20, required_state: requiredState };

/** The lists of a messenger: conversations, with a window of the latest two, and spaces. */
const lists = (): Map<string, MSC3575List> =>
  new Map<string, MSC3575List>([
    ['conversations', { ranges: [[0, 1]], ...room, filters: { not_room_types: ['m.space'] } }],
    ['spaces', { ranges: [[0, 9]], ...room, filters: { room_types: ['m.space'] } }],
  ]);

/** Milliseconds that the server may hold back a response without changes. */
const syncTimeout = 5_000;

/** Returns the sliding sync of a client. */
export const slidingSyncOf = (client: MatrixClient, url: string): SlidingSync =>
  new SlidingSync(url, lists(), room, client, syncTimeout);

/** A logged-in user whose client uses sliding sync. */
export class SlidingSession {
  readonly client: MatrixClient;
  readonly slidingSync: SlidingSync;

  private constructor(client: MatrixClient, url: string) {
    this.client = client;
    this.slidingSync = slidingSyncOf(client, url);
  }

  /** Registers a user whose name begins with `name`, and starts to sync. */
  static async ofNewUser(url: string, name: string): Promise<SlidingSession> {
    const { user_id, device_id, access_token } = await register(url, uniqueName(name));
    if (!device_id || !access_token) throw new Error('registration did not log in');
    const options = { baseUrl: url, userId: user_id, deviceId: device_id, accessToken: access_token };
    const session = new SlidingSession(createClient({ ...options, timelineSupport: true }), url);
    await session.client.startClient({ slidingSync: session.slidingSync, threadSupport: true });
    await eventually(`the first sync of ${user_id}`, () => session.client.isInitialSyncComplete());
    return session;
  }

  get userId(): string {
    return this.client.getSafeUserId();
  }

  /** Waits until this client knows that the user has this membership in the room. */
  room(roomId: string, membership = 'join'): Promise<Room> {
    return eventually(`${this.userId} to know ${roomId} as ${membership}`, () => {
      const room = this.client.getRoom(roomId);
      return room?.getMyMembership() === membership && room;
    });
  }

  /** Waits until the event has arrived in the room's timeline. */
  event(roomId: string, eventId: string): Promise<MatrixEvent> {
    return eventually(`${this.userId} to receive ${eventId}`, () =>
      this.client.getRoom(roomId)?.findEventById(eventId),
    );
  }

  stop(): void {
    this.client.stopClient();
  }
}
