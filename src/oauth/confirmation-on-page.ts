import { type AccountConfirmation, Challenge, type ExternalConfirmation } from '../accounts/index.ts';
import type { Database } from '../kernel/database/index.ts';
import { type Randomness, randomString } from '../kernel/randomness.ts';
import { unrecognized } from '../protocol/index.ts';
import type { CrossSigningResets } from './cross-signing-resets.ts';
import type { OAuthTables } from './tables.ts';

export interface ConfirmationOnPageDeps {
  readonly resets: CrossSigningResets;
  readonly randomness: Randomness;
  /** Whether the user of a session confirms actions on the account page. */
  readonly appliesTo: (userId: string, deviceId: string | undefined) => Promise<boolean>;
  /** URL of the account page. */
  readonly accountUrl: () => Promise<string>;
}

/** The only operation with interactive authentication that sessions of OAuth 2.0 can carry out. */
export const crossSigningUpload = 'POST /keys/device_signing/upload';

/** The stage of the specification, and its name in MSC4312. */
const stages = ['m.oauth', 'org.matrix.cross_signing_reset'] as const;

/**
 * Lets sessions of OAuth 2.0 replace cross-signing keys after the user has confirmed the replacement on the account
 * page. Rejects all other operations of these sessions that need interactive authentication, because users carry them
 * out on the account page itself.
 * Source: client-server API, "OAuth authentication".
 */
export class ConfirmationOnPage implements ExternalConfirmation {
  readonly #deps: ConfirmationOnPageDeps;

  constructor(deps: ConfirmationOnPageDeps) {
    this.#deps = deps;
  }

  async confirm<T>(
    { requester: { userId, deviceId }, operation }: AccountConfirmation,
    action: () => Promise<T>,
  ): Promise<{ readonly result: T } | undefined> {
    const { resets, appliesTo } = this.#deps;
    if (!(await appliesTo(userId, deviceId))) return undefined;
    if (operation !== crossSigningUpload) {
      throw unrecognized('Sessions of OAuth 2.0 cannot do this: use the account page of the server');
    }
    const done = await resets.use(userId, action);
    if (done === undefined) throw await this.#challenge();
    return done;
  }

  async #challenge(): Promise<Challenge> {
    const url = `${await this.#deps.accountUrl()}?action=org.matrix.cross_signing_reset`;
    return new Challenge({
      flows: stages.map((stage) => ({ stages: [stage] })),
      params: Object.fromEntries(stages.map((stage) => [stage, { url }])),
      session: randomString(this.#deps.randomness, 24),
      completed: [],
    });
  }
}

/** Whether a session was opened by OAuth 2.0. */
export async function isOAuthSession(
  database: Database,
  userId: string,
  deviceId: string | undefined,
): Promise<boolean> {
  if (deviceId === undefined) return false;
  const row = await database
    .reader<OAuthTables>()
    .selectFrom('oauth_sessions')
    .select('device_id')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  return row !== undefined;
}
