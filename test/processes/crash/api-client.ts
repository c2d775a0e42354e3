/** Thrown for a response whose status is not in the 200s. */
export class ApiError extends Error {
  readonly status: number;
  readonly errcode: string;

  constructor(request: string, status: number, errcode: string) {
    super(`${request}: ${status} ${errcode}`);
    this.status = status;
    this.errcode = errcode;
  }
}

/** An event in the format of the client-server API. */
export interface ClientEvent {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** A client of one user, which calls the few endpoints that the crash tests need, over `fetch`. */
export class ApiClient {
  readonly userId: string;
  readonly #url: string;
  readonly #token: string;

  private constructor(url: string, userId: string, token: string) {
    this.userId = userId;
    this.#url = url;
    this.#token = token;
  }

  /** Registers a user; the server must have open registration without verification. */
  static async register(url: string, username: string): Promise<ApiClient> {
    const anonymous = new ApiClient(url, '', '');
    const body = { username, password: 'correct horse battery staple', auth: { type: 'm.login.dummy' } };
    const registered = await anonymous.request<{ user_id: string; access_token: string }>(
      'POST',
      '/register',
      body,
    );
    return new ApiClient(url, registered.user_id, registered.access_token);
  }

  /**
   * @param path URL-encoded, below `/_matrix/client/v3`
   * @throws ApiError when the server responds with an error, TypeError when it does not respond
   */
  async request<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.#url}/_matrix/client/v3${path}`, {
      method,
      headers: {
        ...(this.#token && { authorization: `Bearer ${this.#token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T & { errcode?: string };
    if (response.ok) return answer;
    throw new ApiError(`${method} ${path}`, response.status, answer.errcode ?? 'no errcode');
  }

  async createRoom(invite: readonly string[]): Promise<string> {
    const { room_id } = await this.request<{ room_id: string }>('POST', '/createRoom', {
      preset: 'private_chat',
      invite,
    });
    return room_id;
  }

  async join(roomId: string): Promise<void> {
    await this.request('POST', `/join/${encodeURIComponent(roomId)}`, {});
  }

  /** Sends a text message. @returns the event id */
  async send(roomId: string, text: string, transactionId: string): Promise<string> {
    const path = `${roomPath(roomId)}/send/m.room.message/${transactionId}`;
    const content = { msgtype: 'm.text', body: text };
    return (await this.request<{ event_id: string }>('PUT', path, content)).event_id;
  }

  async setTyping(roomId: string, typing: boolean): Promise<void> {
    const path = `${roomPath(roomId)}/typing/${encodeURIComponent(this.userId)}`;
    await this.request('PUT', path, typing ? { typing, timeout: 30_000 } : { typing });
  }

  event(roomId: string, eventId: string): Promise<ClientEvent> {
    return this.request('GET', `${roomPath(roomId)}/event/${encodeURIComponent(eventId)}`);
  }

  /**
   * Returns one page of `/messages`.
   * @param from a token; without one, the page begins at the start or end of the room, by `dir`
   */
  messages(roomId: string, dir: 'b' | 'f', from?: string): Promise<Page> {
    const query = new URLSearchParams({ dir, limit: '500', ...(from !== undefined && { from }) });
    return this.request('GET', `${roomPath(roomId)}/messages?${query}`);
  }

  /** Syncs since a token, waiting up to `timeout` milliseconds for changes. */
  sync(since: string | undefined, timeout: number): Promise<SyncAnswer> {
    const filter = JSON.stringify({ room: { timeline: { limit: 50 } } });
    const query = new URLSearchParams({
      timeout: `${timeout}`,
      filter,
      ...(since !== undefined && { since }),
    });
    return this.request('GET', `/sync?${query}`);
  }
}

export interface Page {
  readonly chunk: readonly ClientEvent[];
  /** Absent at the end of the room. */
  readonly end?: string;
}

export interface SyncAnswer {
  readonly next_batch: string;
  readonly rooms?: {
    readonly join?: Readonly<Record<string, JoinedRoom>>;
  };
}

export interface JoinedRoom {
  readonly timeline?: {
    readonly events: readonly ClientEvent[];
    readonly limited?: boolean;
    readonly prev_batch?: string;
  };
  readonly ephemeral?: {
    readonly events: readonly { readonly type: string; readonly content: Record<string, unknown> }[];
  };
}

function roomPath(roomId: string): string {
  return `/rooms/${encodeURIComponent(roomId)}`;
}
