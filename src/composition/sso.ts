import { beginRate, openSso, type SsoDeps, type SsoSlice } from '../sso/index.ts';
import type { Kernel } from './kernel.ts';

/**
 * Opens single sign-on. Must be called before accounts are opened, because accounts offer its login types and stages.
 */
export function startSso(
  kernel: Kernel,
  deps: Pick<
    SsoDeps,
    'http' | 'guardedHttp' | 'pages' | 'pictures' | 'profiles' | 'thirdPartyIds' | 'accounts' | 'mappers'
  >,
): SsoSlice {
  const { configuration, limiter, serverName } = kernel;
  const { accounts, profiles, rateLimits, server, sso } = configuration;
  const consent = accounts.user_consent;
  return openSso(
    {
      ...kernel,
      ...deps,
      log: kernel.namedLog('sso'),
      limits: { registration: limiter(rateLimits.rc_registration), begin: limiter(beginRate) },
    },
    {
      ...sso,
      server_name: serverName,
      public_baseurl: server.public_baseurl,
      max_avatar_size: profiles.max_avatar_size,
      terms: consent?.require_at_registration ? consent.version : null,
    },
  );
}
