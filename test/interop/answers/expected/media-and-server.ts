import type { ExpectedDifference } from './expected-difference.ts';

/** Differences about media and the server itself. */
export const mediaAndServer: readonly ExpectedDifference[] = [
  {
    requests: ['anna GET */media/*'],
    at: ['headers.content-security-policy'],
    what: 'Media have the content security policy of the specification, thumbnails too',
    reason: 'The specification recommends this policy for all media',
  },
  {
    requests: ['anna GET */media/*'],
    at: ['headers.cache-control'],
    what: 'The `cache-control` of media allows only private caches, such as that of the client',
    reason: 'Downloads need an access token, so a shared cache must not answer them',
  },
  {
    requests: ['anna GET */media/download/*'],
    at: ['headers.content-type', 'body'],
    what: 'A text has the media type that it was uploaded with, without an added charset',
    reason: 'By the description of the operation, the media type is that of the upload',
  },
  {
    requests: ['anna GET */media/thumbnail/*'],
    at: ['headers.content-disposition'],
    what: 'Thumbnails have a file name',
    reason: 'The specification recommends a file name',
  },
  {
    requests: ['anonymous GET /_matrix/client/versions'],
    at: ['body.versions.*', 'body.unstable_features.*'],
    what: 'Versions 1.13 to 1.19 are claimed, and those before 1.1 are not; the lists of unstable features differ',
    reason:
      'A version is claimed when everything is served that clients conclude from it (decision 0100; docs/client-gates.md)',
  },
  {
    requests: ['anna GET /capabilities'],
    at: ['body.capabilities.*'],
    what: 'Capabilities name the features that Hearth supports and allows',
    reason: 'The features of the servers differ',
  },
  {
    requests: ['anonymous * /_matrix/key/v2/query*'],
    at: ['body.server_keys.*'],
    what: 'The notary also answers for its own keys',
    reason: 'The specification does not exclude these keys from requests to a notary',
  },
  {
    requests: ['* GET */federation/v1/version'],
    at: ['body.server.*'],
    what: 'The name and the version of the program differ',
    reason: 'The servers are different programs',
  },
];
