/** Requests to other servers. All outbound HTTP requests are sent by this code. */
export { type OutboundConfig, outboundConfigOfFederation, outboundSection, privateRanges } from './config.ts';
export { OutboundError, type OutboundFailure, requestAborted } from './errors.ts';
export {
  type FetchedResponse,
  OutboundHttp,
  type OutboundHttpOptions,
  type OutboundRequest,
  type OutboundResponse,
} from './outbound-http.ts';
export { type HostAddress, type Resolver, type SrvRecord, systemResolver } from './resolver.ts';
export { ResponseBudget } from './response-budget.ts';
export {
  type CertificateAnswer,
  isCertificateFor,
  type ServedCertificate,
  servedCertificates,
  type TlsEndpoint,
} from './served-certificate.ts';
export type { Target } from './target.ts';
export { type TlsOptions, TlsSettings } from './tls-settings.ts';
export { ownSoftware } from './user-agent.ts';
