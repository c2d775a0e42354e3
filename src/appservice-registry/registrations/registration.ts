/** The registration of an application service. Source: application service API, "Registration". */
export interface Registration {
  readonly id: string;
  /** Base URL of requests to the service, without a trailing slash; `undefined`: the service receives no requests. */
  readonly url: string | undefined;
  /** Authenticates the service to this server. */
  readonly asToken: string;
  /** Authenticates this server to the service. */
  readonly hsToken: string;
  readonly senderLocalpart: string;
  readonly users: readonly Namespace[];
  readonly aliases: readonly Namespace[];
  readonly rooms: readonly Namespace[];
  /** Whether requests as users of the service are rate-limited; requests as its sender never are. */
  readonly rateLimited: boolean;
  /** Whether the service receives typing, receipts, presence and to-device messages (MSC2409, MSC4203). */
  readonly receivesEphemeral: boolean;
  /** Whether the service receives changes of device lists and counts of keys (MSC3202). */
  readonly receivesDeviceChanges: boolean;
  /** Whether the service creates devices by `PUT /devices/{deviceId}` and never logs in (MSC4190). */
  readonly managesDevices: boolean;
  /** Third-party networks that the service bridges, for instance `irc`. */
  readonly protocols: readonly string[];
}

/** Ids that a service is interested in. */
export interface Namespace {
  /** A regular expression in RE2 syntax that matches at the beginning of an id. */
  readonly regex: string;
  /** Whether only the service may create users or aliases that match. */
  readonly exclusive: boolean;
}
