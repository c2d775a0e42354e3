import type { AccountsSlice, Limiter, ThirdPartyIdentifiers } from '../accounts/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { Profiles } from '../profiles/index.ts';
import type { SsoConfig } from './config.ts';
import type { PictureStore } from './new-accounts/provider-profiles.ts';
import type { UserMapper } from './user-mapper.ts';

export interface SsoDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** For URLs of identity providers that the configuration names: also reaches private addresses. */
  readonly http: Pick<OutboundHttp, 'fetch'>;
  /**
   * For URLs that users or identity providers choose, for instance of pictures and of endpoints in a discovery
   * document: refuses private addresses.
   */
  readonly guardedHttp: Pick<OutboundHttp, 'fetch'>;
  readonly pages: Pages;
  readonly profiles: Profiles;
  readonly thirdPartyIds: Pick<ThirdPartyIdentifiers, 'bind' | 'findUser' | 'isAllowed'>;
  /** Absent when `enable_media_repo` is off. */
  readonly pictures: PictureStore | undefined;
  /** Modules that map users to accounts, by the id of the provider; absent where none is configured. */
  readonly mappers?: ReadonlyMap<string, UserMapper> | undefined;
  /** Returns the slice `accounts`, which is opened later, because it takes the login types of single sign-on. */
  readonly accounts: () => AccountsSlice;
  readonly limits: {
    /** Limits how many accounts are created from the IP address of a client. */
    readonly registration: Limiter;
    /** Limits how many browser logins are begun from the IP address of a client. */
    readonly begin: Limiter;
  };
}

export interface SsoOptions extends SsoConfig {
  readonly server_name: string;
  readonly public_baseurl: string | null;
  readonly max_avatar_size: number | null;
  /** The version of the terms that new users must accept before their account is created; null without terms. */
  readonly terms: string | null;
}
