import type { Static, TObject } from 'typebox';
import type { Rule } from '../../kernel/config/index.ts';
import type { keyOptions } from './keys.ts';
import type { requestOptions } from './requests.ts';

type Values = Static<TObject<typeof keyOptions & typeof requestOptions>>;

const defaultKeyServer = 'matrix.org';

const requireVerifiableKeys: Rule<Values> = (values, view) => {
  if (values.federation_verify_certificates) return;
  for (const [index, server] of values.trusted_key_servers.entries()) {
    const hasVerifyKeys = Object.keys(server.verify_keys ?? {}).length > 0;
    if (hasVerifyKeys || server.accept_keys_insecurely) continue;
    const message = `${server.server_name} needs verify_keys while federation_verify_certificates is off, otherwise its responses could be forged; accept_keys_insecurely: true accepts that risk`;
    view.error(`trusted_key_servers[${index}]`, message);
  }
};

const mentionDefaultKeyServer: Rule<Values> = (values, view) => {
  const usesDefaultKeyServer = values.trusted_key_servers.some(
    ({ server_name }) => server_name === defaultKeyServer,
  );
  if (usesDefaultKeyServer && !values.suppress_key_server_warning) {
    const message = `the keys of other servers are requested from ${defaultKeyServer}; if this is intended, set suppress_key_server_warning: true`;
    view.notice('trusted_key_servers', message);
  }
};

const warnOfIdleExemptions: Rule<Values> = (values, view) => {
  const exempt = values.federation_certificate_verification_whitelist;
  if (!values.federation_verify_certificates && exempt.length > 0) {
    const message = 'has no effect while federation_verify_certificates is off';
    view.warn('federation_certificate_verification_whitelist', message);
  }
};

/** Rules between the options of requests and keys. */
export const keyRules = [requireVerifiableKeys, mentionDefaultKeyServer, warnOfIdleExemptions];
