/**
 * Users of every subject, and `admin`, a server administrator; `anonymous` sends no access token, `server` is a server
 * that signs its requests.
 */
export type Requester = 'anna' | 'ben' | 'cleo' | 'admin' | 'anonymous' | 'server';

/** Values that were saved from earlier responses of the same server, by name. */
export type Saved = ReadonlyMap<string, string>;

/** JSON, or text that is sent as it is. `{name}` in strings is replaced by the saved value. */
export type RequestBody = object | string | number | null;

export interface RequestOptions {
  /** Distinguishes the request from others with the same user, method and path. */
  readonly note?: string;
  /**
   * Values to save: names, each with the path of its value in the JSON of the response. For an `mxc:` URI,
   * `server/mediaId` is also saved, under the name with the suffix `-id`.
   */
  readonly save?: Readonly<Record<string, string>>;
  /** Set when lists in the response have no order. */
  readonly anyOrder?: true;
  /**
   * Set when a server may answer with an older state for a moment, as with all syncs: the request is repeated while
   * answers differ unexpectedly.
   */
  readonly settles?: true;
  /** Media type of the body, when it is not JSON. */
  readonly type?: string;
  /** Bytes of the body. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  /** Response headers that are compared. */
  readonly headers?: readonly string[];
  /** Access token to use instead of the requester's; `{name}` is replaced. */
  readonly token?: string;
}

/** The user, `METHOD path` (below `/_matrix/client/v3` unless it begins with `/_`), the body, and further options. */
export type ComparedRequest = readonly [
  requester: Requester,
  request: string,
  body?: RequestBody | undefined,
  options?: RequestOptions,
];

/** Requests about one subject, sent in order by users of their own. */
export interface Subject {
  readonly subject: string;
  readonly requests: readonly ComparedRequest[];
}

/** Names a request for readers: `anna GET /account/whoami (note)`. */
export function titleOf([requester, request, , options]: ComparedRequest): string {
  return `${requester} ${request}${options?.note === undefined ? '' : ` (${options.note})`}`;
}
