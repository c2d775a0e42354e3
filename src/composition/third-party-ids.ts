import { Pages } from '../kernel/pages/index.ts';
import type { Templates } from '../kernel/templates/index.ts';
import { Mails } from '../mail/index.ts';
import {
  type AddressExtensions,
  openThirdPartyIds,
  type ThirdPartyIdRoutesDeps,
  type ThirdPartyIds,
} from '../third-party-ids/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';

/** Mail addresses and phone numbers of accounts, and the dependencies of their routes. */
export interface OpenedThirdPartyIds {
  readonly thirdPartyIds: ThirdPartyIds;
  readonly routesDeps: ThirdPartyIdRoutesDeps;
}

/**
 * Opens mail, and the addresses of accounts. Must be called before accounts are opened, because accounts use both.
 * @param templates of mails and of the pages that links in mails lead to
 * @param extensions rules of modules
 */
export function startThirdPartyIds(
  kernel: Kernel,
  federation: Federation,
  templates: Templates,
  extensions?: AddressExtensions,
): OpenedThirdPartyIds {
  const { configuration, serverName } = kernel;
  const { email } = configuration.mail;
  const mails = email ? new Mails({ ...kernel, templates, log: kernel.namedLog('mail') }, email) : undefined;
  const { public_baseurl } = configuration.server;
  const deps = {
    ...kernel,
    http: federation.http,
    sign: federation.sign,
    mails,
    baseUrl: (public_baseurl ?? `https://${serverName}`).replace(/\/+$/, ''),
    limiter: kernel.limiter(configuration.rateLimits.rc_3pid_validation),
    options: configuration.accounts,
    extensions,
  };
  const thirdPartyIds = openThirdPartyIds(deps);
  return { thirdPartyIds, routesDeps: { ...deps, pages: new Pages(templates) } };
}
