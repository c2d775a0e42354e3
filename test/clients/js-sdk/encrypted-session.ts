import { setTimeout as sleep } from 'node:timers/promises';
import type { ICreateClientOpts, LoginResponse, MatrixEvent, RegisterResponse } from 'matrix-js-sdk';
import { EventStatus, EventTimeline, EventType, SyncState } from 'matrix-js-sdk';
import type { CryptoApi } from 'matrix-js-sdk/lib/crypto-api/index.js';
import { eventually } from '../eventually.ts';
import { freshName, logIn, password, register, Session } from './session.ts';
import { slidingSyncOf } from './sliding-session.ts';

/** By which kind of sync a client follows. */
export type Follows = 'classic' | 'sliding';

type Credentials = RegisterResponse | LoginResponse;

/** Milliseconds between two attempts to reach the server. */
const retryDelay = 100;

/** The network between a client and its server, which can be cut. */
class Line {
  #cut = new AbortController();

  get isCut(): boolean {
    return this.#cut.signal.aborted;
  }

  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const signals = [this.#cut.signal, ...(init?.signal ? [init.signal] : [])];
    return fetch(input, { ...init, signal: AbortSignal.any(signals) }).catch((error: unknown) => {
      throw this.isCut ? new TypeError('the line is cut') : error;
    });
  };

  cut(): void {
    this.#cut.abort();
  }

  mend(): void {
    this.#cut = new AbortController();
  }
}

/** A logged-in user whose client encrypts and decrypts with its Rust cryptography, with keys in memory. */
export class EncryptedSession extends Session {
  /** What opens the user's secret storage, as they would have it on paper. */
  recoveryKey: Uint8Array<ArrayBuffer> | undefined;
  readonly #line: Line;
  readonly #follows: Follows;

  private constructor(
    url: string,
    login: Credentials,
    {
      recoveryKey,
      follows = 'classic',
    }: { recoveryKey?: Uint8Array<ArrayBuffer> | undefined; follows?: Follows } = {},
  ) {
    const line = new Line();
    const options: Partial<ICreateClientOpts> = {
      fetchFn: line.fetch,
      cryptoCallbacks: {
        getSecretStorageKey: async ({ keys }) => {
          const [keyId] = Object.keys(keys);
          return keyId !== undefined && this.recoveryKey ? [keyId, this.recoveryKey] : null;
        },
        cacheSecretStorageKey: (_keyId, _description, key) => {
          this.recoveryKey = key;
        },
      },
    };
    super(url, login, options);
    this.recoveryKey = recoveryKey;
    this.#line = line;
    this.#follows = follows;
  }

  /** Registers a user, who has neither cross-signing nor a backup yet. */
  static override async ofNewUser(url: string, name: string, follows?: Follows): Promise<EncryptedSession> {
    const login = await register(url, freshName(name));
    return new EncryptedSession(url, login, { ...(follows && { follows }) }).started();
  }

  /** Registers a user with cross-signing, secret storage and a key backup. */
  static async ofEquippedUser(url: string, name: string, follows?: Follows): Promise<EncryptedSession> {
    const session = await EncryptedSession.ofNewUser(url, name, follows);
    await session.equip();
    return session;
  }

  /** One more device of the same user, which nobody has verified yet. */
  async onAnotherDevice({ withRecoveryKey = false } = {}): Promise<EncryptedSession> {
    const url = this.client.baseUrl;
    const recoveryKey = withRecoveryKey ? this.recoveryKey : undefined;
    const options = { recoveryKey, follows: this.#follows };
    return new EncryptedSession(url, await logIn(url, this.userId), options).started();
  }

  get crypto(): CryptoApi {
    const crypto = this.client.getCrypto();
    if (!crypto) throw new Error('the client does not encrypt');
    return crypto;
  }

  /** Makes cross-signing keys, uploads them with the password, and puts them into secret storage with a backup. */
  async equip(): Promise<void> {
    await this.crypto.bootstrapCrossSigning({ authUploadDeviceSigningKeys: this.#proveIdentity });
    await this.crypto.bootstrapSecretStorage({
      createSecretStorageKey: () => this.crypto.createRecoveryKeyFromPassphrase(),
      setupNewSecretStorage: true,
      setupNewKeyBackup: true,
    });
  }

  /** Makes new cross-signing keys in place of those that there are. */
  replaceCrossSigning(): Promise<void> {
    return this.crypto.bootstrapCrossSigning({
      setupNewCrossSigning: true,
      authUploadDeviceSigningKeys: this.#proveIdentity,
    });
  }

  /** What the event says, once it has arrived and could be decrypted. */
  async read(roomId: string, eventId: string, patience?: number): Promise<MatrixEvent> {
    let event: MatrixEvent | undefined;
    const look = async () => {
      event = this.client.getRoom(roomId)?.findEventById(eventId);
      // As an application does for what it shows: the client leaves alone what was read already.
      if (event?.isEncrypted() && event.decryptionFailureReason === null) {
        await this.client.decryptEventIfNeeded(event);
      }
      return event && !event.isBeingDecrypted() && isClear(event) && event;
    };
    try {
      return await eventually(`${this.userId} to read ${eventId}`, look, patience);
    } catch (error) {
      throw new Error(
        `${this.userId} can not read ${eventId}: ${event?.decryptionFailureReason ?? 'missing'}`,
        {
          cause: error,
        },
      );
    }
  }

  /**
   * Has the client look for what its syncs have left out, as it does after it was away for more than they hold: by
   * the event itself, or by scrolling back, which some servers need to be reminded of what they miss themselves.
   */
  async find(roomId: string, eventId: string, patience?: number): Promise<void> {
    const room = await this.room(roomId);
    const isThere = () => room.findEventById(eventId) !== undefined;
    const look = async () => {
      if (isThere()) return true;
      await this.client
        .getEventTimeline(room.getUnfilteredTimelineSet(), eventId)
        .catch(() => this.client.scrollback(room))
        .catch(() => sleep(retryDelay));
      return isThere();
    };
    await eventually(`${this.userId} to find ${eventId}`, look, patience);
  }

  /** Sends a text that is encrypted if the room is. @returns its event id */
  async say(roomId: string, text: string): Promise<string> {
    return (await this.client.sendTextMessage(roomId, text)).event_id;
  }

  /** Says something, and tries again as one message until the server has taken it. @returns its event id */
  async insist(roomId: string, text: string): Promise<string> {
    const transactionId = this.client.makeTxnId();
    const room = await this.room(roomId);
    const first = this.client.sendTextMessage(roomId, text, transactionId);
    const event = room.getEventForTxnId(transactionId);
    if (!event) throw new Error('the client does not know what it sends');
    await first.catch(() => sleep(retryDelay));
    const taken = async () => {
      // What was taken though the answer was lost has come with a sync.
      if (event.status === null || event.status === EventStatus.SENT) return event.getId();
      await this.client.resendEvent(event, room).catch(() => sleep(retryDelay));
      return false;
    };
    return eventually(`${this.userId} to be heard`, taken, 180_000);
  }

  /** The room once the client knows that it is encrypted and who is in it. */
  async encryptedRoom(roomId: string, members: number): Promise<void> {
    const room = await this.room(roomId);
    await eventually(`${this.userId} to know that ${roomId} is encrypted with ${members} members`, () => {
      const state = room.getLiveTimeline().getState(EventTimeline.FORWARDS);
      const isEncrypted = state?.getStateEvents(EventType.RoomEncryption, '') != null;
      // Who is counted in the summary need not be known yet, and it is for those who are that the client encrypts.
      return isEncrypted && room.getJoinedMembers().length === members;
    });
  }

  /** Cuts the line to the server: what is under way fails, and nothing else gets through. */
  goOffline(): void {
    this.#line.cut();
  }

  /** Mends the line, and waits until the client syncs again. */
  async goOnline(): Promise<void> {
    this.#line.mend();
    await this.reconnect();
  }

  /** Has the client not wait until it tries again, after the line or the server was away. */
  async reconnect(): Promise<void> {
    await eventually(`${this.userId} to sync again`, async () => {
      if (this.client.getSyncState() === SyncState.Syncing) return true;
      this.client.retryImmediately();
      await sleep(retryDelay);
      return false;
    });
  }

  protected override async started(initialSyncLimit?: number): Promise<this> {
    await this.client.initRustCrypto({ useIndexedDB: false });
    if (this.#follows === 'classic') return super.started(initialSyncLimit);
    const slidingSync = slidingSyncOf(this.client, this.client.baseUrl);
    await this.client.startClient({ slidingSync, threadSupport: true });
    await eventually(`the first sync of ${this.userId}`, () => this.client.isInitialSyncComplete());
    return this;
  }

  readonly #proveIdentity = async <T>(
    makeRequest: (
      auth: { type: string; identifier: object; password: string; session?: string } | null,
    ) => Promise<T>,
  ): Promise<T> => {
    const identifier = { type: 'm.id.user', user: this.userId };
    return makeRequest({ type: 'm.login.password', identifier, password });
  };
}

function isClear(event: MatrixEvent): boolean {
  return !event.isDecryptionFailure() && event.getType() !== EventType.RoomMessageEncrypted;
}
