import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { ServerNotices } from '../server-notices.ts';
import { readNotifiedVersion, writeNotifiedVersion } from '../store.ts';
import type { ServerNoticeTables } from '../tables.ts';
import type { OncePerUser } from './once-per-user.ts';

/** The consent of users to the policy of the server; provided by accounts. */
export interface PolicyConsent {
  /** Whether a user has agreed, or need not agree. */
  hasAgreed(userId: string): Promise<boolean>;
  /** Returns the link to the form where a user agrees. */
  link(userId: string): string;
}

/** The options of `user_consent` about notices. */
export interface ConsentNoticeOptions {
  /** The current version of the policy. */
  readonly version: string;
  readonly content: { readonly msgtype: string; readonly body: string };
  /** `send_server_notice_to_guests` */
  readonly toGuests: boolean;
}

export interface ConsentNoticesDeps {
  readonly database: Database;
  readonly notices: Pick<ServerNotices, 'send'>;
  readonly consent: PolicyConsent;
  readonly isGuest: (userId: string) => Promise<boolean>;
  readonly oncePerUser: OncePerUser;
}

/**
 * Asks active users to agree to the policy: one notice for each version. Source: interface document, "user_consent".
 */
export class ConsentNotices {
  readonly #deps: ConsentNoticesDeps;
  readonly #options: ConsentNoticeOptions;

  constructor(deps: ConsentNoticesDeps, options: ConsentNoticeOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Sends the notice to a user who has sent a request, unless it was sent before or the user has agreed. */
  onActivity(userId: string): void {
    this.#deps.oncePerUser.run(userId, () => this.#notify(userId));
  }

  async #notify(userId: string): Promise<void> {
    const { database, consent, isGuest, notices } = this.#deps;
    const { version, toGuests, content } = this.#options;
    if (await consent.hasAgreed(userId)) return;
    if (!toGuests && (await isGuest(userId))) return;
    if ((await readNotifiedVersion(database.reader<ServerNoticeTables>(), userId)) === version) return;
    const body = content.body.replaceAll('%(consent_uri)s', consent.link(userId));
    // The transaction id prevents a second notice when the server stops before it has recorded the version. `policy` is
    // not the id of a user, so that the transaction id is different from the transaction ids of requests.
    const once = { userId: 'policy', deviceId: undefined, txnId: JSON.stringify([userId, version]) };
    await notices.send(userId, { ...content, body }, { once });
    await database.transaction(async (writer) =>
      writeNotifiedVersion(writerFor<ServerNoticeTables>(writer), userId, version),
    );
  }
}
