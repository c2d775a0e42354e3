import { setTimeout as sleep } from 'node:timers/promises';
import type { ICreateClientOpts, LoginResponse, MatrixEvent, RegisterResponse } from 'matrix-js-sdk';
import { Direction, EventStatus, EventTimeline, EventType, SyncState } from 'matrix-js-sdk';
import type { CryptoApi } from 'matrix-js-sdk/lib/crypto-api/index.js';
import { eventually } from '../eventually.ts';
import { logIn, password, register, Session, uniqueName } from './session.ts';
import { slidingSyncOf } from './sliding-session.ts';

/** The kind of sync that a client uses. */
export type SyncKind = 'classic' | 'sliding';

type Credentials = RegisterResponse | LoginResponse;

/** Milliseconds between two attempts to reach the server. */
const retryDelay = 100;

/** The connection between a client and its server, which a test can cut. */
class CuttableConnection {
  #cut = new AbortController();

  get isCut(): boolean {
    return this.#cut.signal.aborted;
  }

  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const signals = [this.#cut.signal, ...(init?.signal ? [init.signal] : [])];
    return fetch(input, { ...init, signal: AbortSignal.any(signals) }).catch((error: unknown) => {
      throw this.isCut ? new TypeError('the connection is cut') : error;
    });
  };

  cut(): void {
    this.#cut.abort();
  }

  restore(): void {
    this.#cut = new AbortController();
  }
}

/**
 * A logged-in user whose client encrypts and decrypts with its Rust cryptography; keys are stored in memory.
 */
export class EncryptedSession extends Session {
  /** The key of the user's secret storage. */
  recoveryKey: Uint8Array<ArrayBuffer> | undefined;
  readonly #connection: CuttableConnection;
  /** Events that were loaded, and are in no timeline of the client, by their ids. */
  readonly #loaded = new Map<string, MatrixEvent>();
  readonly #syncKind: SyncKind;

  private constructor(
    url: string,
    login: Credentials,
    {
      recoveryKey,
      syncKind = 'classic',
    }: { recoveryKey?: Uint8Array<ArrayBuffer> | undefined; syncKind?: SyncKind } = {},
  ) {
    const connection = new CuttableConnection();
    const options: Partial<ICreateClientOpts> = {
      fetchFn: connection.fetch,
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
    this.#connection = connection;
    this.#syncKind = syncKind;
  }

  /** Registers a user without cross-signing and key backup. */
  static override async ofNewUser(url: string, name: string, syncKind?: SyncKind): Promise<EncryptedSession> {
    const login = await register(url, uniqueName(name));
    return new EncryptedSession(url, login, { ...(syncKind && { syncKind }) }).started();
  }

  /** Registers a user with cross-signing, secret storage and a key backup. */
  static async withCrossSigning(url: string, name: string, syncKind?: SyncKind): Promise<EncryptedSession> {
    const session = await EncryptedSession.ofNewUser(url, name, syncKind);
    await session.setUpCrossSigning();
    return session;
  }

  /** Logs the user in on one more device, which is not verified. */
  async onAnotherDevice({ withRecoveryKey = false } = {}): Promise<EncryptedSession> {
    const url = this.client.baseUrl;
    const recoveryKey = withRecoveryKey ? this.recoveryKey : undefined;
    const options = { recoveryKey, syncKind: this.#syncKind };
    return new EncryptedSession(url, await logIn(url, this.userId), options).started();
  }

  get crypto(): CryptoApi {
    const crypto = this.client.getCrypto();
    if (!crypto) throw new Error('the client does not encrypt');
    return crypto;
  }

  /**
   * Creates cross-signing keys, uploads them by confirming with the password, and stores them in secret storage.
   * Creates a key backup.
   */
  async setUpCrossSigning(): Promise<void> {
    await this.crypto.bootstrapCrossSigning({ authUploadDeviceSigningKeys: this.#authenticate });
    await this.crypto.bootstrapSecretStorage({
      createSecretStorageKey: () => this.crypto.createRecoveryKeyFromPassphrase(),
      setupNewSecretStorage: true,
      setupNewKeyBackup: true,
    });
  }

  /** Replaces the cross-signing keys by new ones. */
  replaceCrossSigning(): Promise<void> {
    return this.crypto.bootstrapCrossSigning({
      setupNewCrossSigning: true,
      authUploadDeviceSigningKeys: this.#authenticate,
    });
  }

  /** Waits until the event has arrived and is decrypted. */
  async decrypted(roomId: string, eventId: string, timeout?: number): Promise<MatrixEvent> {
    let event: MatrixEvent | undefined;
    const check = async () => {
      event = this.client.getRoom(roomId)?.findEventById(eventId) ?? this.#loaded.get(eventId);
      // The client possibly decrypts only unread events by itself; applications decrypt the events that they show.
      if (event?.isEncrypted() && event.decryptionFailureReason === null) {
        await this.client.decryptEventIfNeeded(event);
      }
      return event && !event.isBeingDecrypted() && isDecrypted(event) && event;
    };
    try {
      return await eventually(`${this.userId} to decrypt ${eventId}`, check, timeout);
    } catch (error) {
      throw new Error(
        `${this.userId} cannot decrypt ${eventId}: ${event?.decryptionFailureReason ?? 'missing'}`,
        {
          cause: error,
        },
      );
    }
  }

  /**
   * Loads an event that the client's syncs have left out, as after a gap. Requests the event and, if that fails, a page of
   * messages, because some servers backfill then. Does not add the event to a timeline: after several gaps, the client can
   * link its timelines in a circle and follow it without end.
   */
  async loadEvent(roomId: string, eventId: string, timeout?: number): Promise<void> {
    const room = await this.room(roomId);
    const { client } = this;
    const check = async () => {
      if (room.findEventById(eventId) ?? this.#loaded.get(eventId)) return true;
      const event = await client.fetchRoomEvent(roomId, eventId).catch(() => undefined);
      if (event) {
        this.#loaded.set(eventId, client.getEventMapper({ preventReEmit: true })(event));
        return true;
      }
      await client
        .createMessagesRequest(roomId, null, 100, Direction.Backward)
        .catch(() => sleep(retryDelay));
      return false;
    };
    await eventually(`${this.userId} to load ${eventId}`, check, timeout);
  }

  /** Sends a text message, encrypted if the room is. @returns its event id */
  async say(roomId: string, text: string): Promise<string> {
    return (await this.client.sendTextMessage(roomId, text)).event_id;
  }

  /**
   * Sends a text message, and retries with the same transaction id until the server has acknowledged it.
   * @returns its event id
   */
  async sendReliably(roomId: string, text: string): Promise<string> {
    const transactionId = this.client.makeTxnId();
    const room = await this.room(roomId);
    const first = this.client.sendTextMessage(roomId, text, transactionId);
    const event = room.getEventForTxnId(transactionId);
    if (!event) throw new Error('the client has no local echo of its message');
    await first.catch(() => sleep(retryDelay));
    const isSent = async () => {
      // When the response was lost, the acknowledgement comes with a sync.
      if (event.status === null || event.status === EventStatus.SENT) return event.getId();
      await this.client.resendEvent(event, room).catch(() => sleep(retryDelay));
      return false;
    };
    return eventually(`${this.userId}'s message to be acknowledged`, isSent, 180_000);
  }

  /** Waits until the client knows that the room is encrypted and who its members are. */
  async waitForEncryptedRoom(roomId: string, members: number): Promise<void> {
    const room = await this.room(roomId);
    await eventually(`${this.userId} to know that ${roomId} is encrypted with ${members} members`, () => {
      const state = room.getLiveTimeline().getState(EventTimeline.FORWARDS);
      const isEncrypted = state?.getStateEvents(EventType.RoomEncryption, '') != null;
      // The member count of the summary is not enough: the client encrypts for the members it has member
      // events of.
      return isEncrypted && room.getJoinedMembers().length === members;
    });
  }

  /** Cuts the connection: pending and new requests fail. */
  goOffline(): void {
    this.#connection.cut();
  }

  /** Restores the connection, and waits until the client syncs again. */
  async goOnline(): Promise<void> {
    this.#connection.restore();
    await this.reconnect();
  }

  /** Makes the client retry at once after an outage, and waits until it syncs again. */
  async reconnect(): Promise<void> {
    await eventually(`${this.userId} to sync again`, async () => {
      if (this.client.getSyncState() === SyncState.Syncing) return true;
      this.client.retryImmediately();
      await sleep(retryDelay);
      return false;
    });
  }

  /**
   * Starts to sync, and waits for the first sync.
   * @param initialSyncLimit high, so that syncs have no gaps on a slow machine: after gaps, timelines of matrix-js-sdk can
   * refer to each other in an endless cycle
   */
  protected override async started(initialSyncLimit = 100): Promise<this> {
    await this.client.initRustCrypto({ useIndexedDB: false });
    if (this.#syncKind === 'classic') return super.started(initialSyncLimit);
    const slidingSync = slidingSyncOf(this.client, this.client.baseUrl);
    await this.client.startClient({ slidingSync, threadSupport: true });
    await eventually(`the first sync of ${this.userId}`, () => this.client.isInitialSyncComplete());
    return this;
  }

  readonly #authenticate = async <T>(
    makeRequest: (
      auth: { type: string; identifier: object; password: string; session?: string } | null,
    ) => Promise<T>,
  ): Promise<T> => {
    const identifier = { type: 'm.id.user', user: this.userId };
    return makeRequest({ type: 'm.login.password', identifier, password });
  };
}

function isDecrypted(event: MatrixEvent): boolean {
  return !event.isDecryptionFailure() && event.getType() !== EventType.RoomMessageEncrypted;
}
