import { openRegisteredAppservices } from '../appservices.ts';
import { startFederation } from '../federation.ts';
import { openRemoteLookups } from '../federation-queries.ts';
import { openHttpToConfiguredServers } from '../http-to-configured-servers.ts';
import type { MainKernel } from '../kernel.ts';
import { startMedia } from '../media.ts';
import { startModules } from '../modules.ts';
import { openOAuthBeforeUsers } from '../oauth.ts';
import type { OpenedSlices } from '../opened-slices.ts';
import { openMailTemplates, openPages } from '../pages.ts';
import { openPusherList } from '../pushers.ts';
import { startThirdPartyIds } from '../third-party-ids.ts';
import { startUrlPreviews } from '../url-previews.ts';

export type Foundation = Awaited<ReturnType<typeof startFoundation>>;

/**
 * Opens what must be open before users and rooms: requests to other servers, modules, media, application services,
 * templates, and the parts of OAuth 2.0, third-party ids and pushers that accounts use.
 */
export async function startFoundation(kernel: MainKernel, opened: OpenedSlices) {
  const federation = await startFederation(kernel, opened);
  const lookups = openRemoteLookups(kernel, federation);
  const modules = await startModules(kernel, federation.http, opened);
  const media = await startMedia(kernel, federation, opened, modules?.media);
  startUrlPreviews(kernel, media, opened);
  const mailTemplates = openMailTemplates(kernel.configuration.mail);
  const appservices = await openRegisteredAppservices(kernel, opened);
  const oauth = openOAuthBeforeUsers(kernel, opened);
  const thirdPartyIds = startThirdPartyIds(kernel, federation, mailTemplates, modules?.addresses);
  const pushers = openPusherList(kernel, thirdPartyIds);
  const pages = openPages(kernel.configuration.mail.templates.custom_template_directory);
  const providerHttp = openHttpToConfiguredServers(kernel, 'identity_provider_connection_pools');
  opened.add('requests to identity providers', { stop: () => providerHttp.close() });
  return {
    federation,
    lookups,
    modules,
    media,
    mailTemplates,
    appservices,
    oauth,
    thirdPartyIds,
    pushers,
    pages,
    providerHttp,
  };
}
