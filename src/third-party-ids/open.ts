import type { Limiter, Reauthenticator, Stage } from '../accounts/index.ts';
import { IdentityServers } from '../identity-servers/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { Mails } from '../mail/index.ts';
import { AccountAddresses, type AddressExtensions } from './addresses/account-addresses.ts';
import { AllowedAddresses } from './addresses/allowed-addresses.ts';
import type { ThirdPartyIdOptions } from './options.ts';
import { PublishedAddresses, type SignRequest } from './publication/published-addresses.ts';
import { addressRoutes } from './routes/address-routes.ts';
import { requestTokenRoutes } from './routes/request-token-routes.ts';
import { phoneSubmitRoute, submitRoutes } from './routes/submit-routes.ts';
import { ValidationMails } from './validation/mail-validation.ts';
import { PhoneDelegate } from './validation/phone-delegate.ts';
import { mailForm, phoneForm } from './validation/stage-forms.ts';
import { addressStage, stageTypes } from './validation/stages.ts';
import { TextMessages } from './validation/text-messages.ts';
import { TokenRequests } from './validation/token-requests.ts';
import { ValidatedSessions } from './validation/validated-sessions.ts';
import { ValidationSessions } from './validation/validation-sessions.ts';

export interface ThirdPartyIdsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly jobs: Jobs;
  readonly http: OutboundHttp;
  /** Signs requests to identity servers. */
  readonly sign: SignRequest;
  /** Absent on a server that sends no mail. */
  readonly mails: Mails | undefined;
  /** URL of this server for clients, without a slash at its end. */
  readonly baseUrl: string;
  /** `rc_3pid_validation`. */
  readonly limiter: Limiter;
  readonly options: ThirdPartyIdOptions;
  /** Rules that modules supply. */
  readonly extensions?: AddressExtensions | undefined;
}

/** Dependencies that only the routes have. */
export interface ThirdPartyIdRoutesDeps extends Pick<ThirdPartyIdsDeps, 'options' | 'mails' | 'baseUrl'> {
  /** Pages that the links in mails lead to. */
  readonly pages: Pages;
  readonly serverName: string;
}

/** Milliseconds that a token of a text message is valid when no mail server is configured. */
const phoneTokenLifetime = 3_600_000;

/**
 * Opens the mail addresses and phone numbers of accounts. Must be called before accounts, which use them, are opened.
 * @returns among others the stages of interactive authentication that this server supports
 */
export function openThirdPartyIds(deps: ThirdPartyIdsDeps) {
  const { options, mails, http, baseUrl } = deps;
  const tokenLifetime = mails?.options.validation_token_lifetime ?? phoneTokenLifetime;
  const sessions = new ValidationSessions({ ...deps, tokenLifetime });
  const { msisdn } = options.account_threepid_delegates;
  const phones =
    msisdn === null ? undefined : new TextMessages({ ...deps, sessions }, new PhoneDelegate(http, msisdn));
  const validated = new ValidatedSessions(sessions, phones?.delegate);
  const published = new PublishedAddresses({ ...deps, identityServers: new IdentityServers(http) });
  const allowed = new AllowedAddresses(options.allowed_local_3pids);
  const resetStages = [...(mails ? [stageTypes.email] : []), ...(phones ? [stageTypes.msisdn] : [])];
  const addresses = new AccountAddresses({ ...deps, allowed, published, resetStages });
  const validationMails = mails && new ValidationMails(mails, baseUrl);
  const requests = new TokenRequests({ ...deps, sessions, addresses, mails: validationMails, phones });
  const formDeps = { ...deps, requests, validated };
  const stages: Stage[] = [
    ...(mails ? [addressStage('email', validated, mailForm(formDeps))] : []),
    ...(phones ? [addressStage('msisdn', validated, phoneForm(formDeps))] : []),
  ];
  return { addresses, stages, published, sessions, validated, phones, requests };
}

export type ThirdPartyIds = ReturnType<typeof openThirdPartyIds>;

/** Returns the routes of third-party identifiers; some need accounts, which are opened later. */
export function thirdPartyIdRoutes(
  { addresses, published, sessions, validated, phones, requests }: ThirdPartyIds,
  { options, mails, pages, serverName, baseUrl }: ThirdPartyIdRoutesDeps,
  reauthenticator: Reauthenticator,
): Route[] {
  const canChange = options.enable_3pid_changes;
  return [
    ...addressRoutes({ addresses, published, validated, reauthenticator, canChange }),
    ...requestTokenRoutes(requests, baseUrl, canChange),
    ...(mails ? submitRoutes({ sessions, pages, serverName, email: mails.options }) : []),
    ...(phones ? [phoneSubmitRoute(validated)] : []),
  ];
}
