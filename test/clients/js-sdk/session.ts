import './tame.ts';
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

const silent: NonNullable<ICreateClientOpts['logger']> = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  getChild: () => silent,
};

/** A name that nobody has on the server yet, also when the server has seen other runs. */
export function freshName(name: string): string {
  return `${name}-${randomBytes(5).toString('hex')}`;
}

/** A client that is not logged in. */
export function stranger(url: string): MatrixClient {
  return createClient({ baseUrl: url, logger: silent });
}

/** Registers as an application does it: asks what is wanted, then goes through the stages. */
export async function register(url: string, username: string): Promise<RegisterResponse> {
  const client = stranger(url);
  const authentication = new InteractiveAuth<RegisterResponse>({
    matrixClient: client,
    doRequest: (auth) => client.registerRequest({ username, password, ...(auth && { auth }) }),
    stateUpdated() {},
    requestEmailToken: () => Promise.reject(new Error('no e-mail here')),
  });
  return authentication.attemptAuth();
}

/** Logs in on one more device. */
export function logIn(url: string, userId: string): Promise<LoginResponse> {
  const identifier = { type: 'm.id.user', user: userId };
  return stranger(url).loginRequest({ type: 'm.login.password', identifier, password });
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
      logger: silent,
      ...options,
    });
  }

  /** Registers a user whose name begins with `name` and starts to sync. */
  static async ofNewUser(url: string, name: string): Promise<Session> {
    return new Session(url, await register(url, freshName(name))).started();
  }

  /** The same with a client that keeps threads apart from the rest of the room. */
  static async withThreads(url: string, name: string): Promise<Session> {
    return new Session(url, await register(url, freshName(name))).started(20, true);
  }

  /** Logs in on one more device and starts to sync. */
  static async ofLogin(url: string, userId: string, initialSyncLimit?: number): Promise<Session> {
    return new Session(url, await logIn(url, userId)).started(initialSyncLimit);
  }

  /** The room, once this client knows that the user has that membership in it. */
  room(roomId: string, membership = 'join'): Promise<Room> {
    return eventually(`${this.userId} to know ${roomId} as ${membership}`, () => {
      const room = this.client.getRoom(roomId);
      return room?.getMyMembership() === membership && room;
    });
  }

  /** The event, once it has arrived in the room's timeline. */
  event(roomId: string, eventId: string): Promise<MatrixEvent> {
    return eventually(`${this.userId} to get ${eventId}`, () =>
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
