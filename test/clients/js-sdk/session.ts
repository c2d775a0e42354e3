import './sdk-for-tests.ts';
import { randomBytes } from 'node:crypto';
import {
  createClient,
  type ICreateClientOpts,
  InteractiveAuth,
  type LoginResponse,
  type MatrixClient,
  type MatrixEvent,
  type RegisterResponse,
  type Room,
} from 'matrix-js-sdk';
import { eventually } from '../eventually.ts';

export const password = 'correct horse battery staple';

const silentLogger: NonNullable<ICreateClientOpts['logger']> = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  getChild: () => silentLogger,
};

/** Returns a username that is unused, also on a server that earlier runs have used. */
export function uniqueName(name: string): string {
  return `${name}-${randomBytes(5).toString('hex')}`;
}

/** Returns a client that is not logged in. */
export function anonymousClient(url: string): MatrixClient {
  return createClient({ baseUrl: url, logger: silentLogger });
}

/**
 * Registers as an application does: requests the stages of user-interactive authentication, and completes
 * them.
 */
export async function register(url: string, username: string): Promise<RegisterResponse> {
  const client = anonymousClient(url);
  const authentication = new InteractiveAuth<RegisterResponse>({
    matrixClient: client,
    doRequest: (auth) => client.registerRequest({ username, password, ...(auth && { auth }) }),
    stateUpdated() {},
    requestEmailToken: () => Promise.reject(new Error('e-mail is not supported')),
  });
  return authentication.attemptAuth();
}

/** Logs in on one more device. */
export function logIn(url: string, userId: string): Promise<LoginResponse> {
  const identifier = { type: 'm.id.user', user: userId };
  return anonymousClient(url).loginRequest({ type: 'm.login.password', identifier, password });
}

/** A logged-in user with a client that syncs. */
export class Session {
  readonly userId: string;
  readonly deviceId: string;
  readonly client: MatrixClient;

  protected constructor(
    url: string,
    { user_id, device_id, access_token }: RegisterResponse | LoginResponse,
    options: Partial<ICreateClientOpts> = {},
  ) {
    if (!device_id || !access_token) throw new Error('registration did not log in');
    this.userId = user_id;
    this.deviceId = device_id;
    this.client = createClient({
      baseUrl: url,
      userId: user_id,
      deviceId: device_id,
      accessToken: access_token,
      timelineSupport: true,
      logger: silentLogger,
      ...options,
    });
  }

  /** Registers a user whose name begins with `name`, and starts to sync. */
  static async ofNewUser(url: string, name: string): Promise<Session> {
    return new Session(url, await register(url, uniqueName(name))).started();
  }

  /** Like `ofNewUser`, with a client that separates threads from the main timeline. */
  static async withThreads(url: string, name: string): Promise<Session> {
    return new Session(url, await register(url, uniqueName(name))).started(20, true);
  }

  /** Logs in on one more device, and starts to sync. */
  static async ofLogin(url: string, userId: string, initialSyncLimit?: number): Promise<Session> {
    return new Session(url, await logIn(url, userId)).started(initialSyncLimit);
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

  protected async started(initialSyncLimit = 20, threadSupport = false): Promise<this> {
    await this.client.startClient({ initialSyncLimit, pollTimeout: 5_000, threadSupport });
    await eventually(`the first sync of ${this.userId}`, () => this.client.isInitialSyncComplete());
    return this;
  }
}
