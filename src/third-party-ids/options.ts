import type { AccountsConfig } from '../accounts/index.ts';

/** Options about third-party identifiers, under the names of the configuration file. */
export type ThirdPartyIdOptions = Pick<
  AccountsConfig,
  | 'account_threepid_delegates'
  | 'allowed_local_3pids'
  | 'enable_3pid_changes'
  | 'next_link_domain_whitelist'
  | 'request_token_inhibit_3pid_errors'
>;
