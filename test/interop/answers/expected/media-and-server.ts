import type { ExpectedDifference } from './expected-difference.ts';

/** Differences about media and the server itself. */
export const mediaAndServer: readonly ExpectedDifference[] = [
  {
    requests: ['anna GET */media/*'],
    at: ['headers.content-security-policy'],
    what: 'Media have the content security policy of the specification, thumbnails too',
    reason: '"Serving inline content"',
  },
  {
    requests: ['anna GET */media/*'],
    at: ['headers.cache-control'],
    what: 'Media are cached privately',
    reason: 'Downloads need an access token',
  },
  {
    requests: ['anna GET */media/download/*'],
    at: ['headers.content-type', 'body'],
    what: 'A text has the media type that it was uploaded with, without an added charset',
    reason: 'Description of the operation',
  },
  {
    requests: ['anna GET */media/thumbnail/*'],
    at: ['headers.content-disposition'],
    what: 'Thumbnails have a file name',
    reason: 'Recommended by the specification',
  },
  {
    requests: ['anonymous GET /_matrix/client/versions'],
    at: ['body.versions.*', 'body.unstable_features.*'],
    what: 'Versions 1.13 to 1.19 are claimed, and those before 1.1 are not; the lists of unstable features differ',
    reason: 'Decision 0100 and docs/client-gates.md',
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
    reason: 'Nothing in the specification excludes them',
  },
  {
    requests: ['* GET */federation/v1/version'],
    at: ['body.server.*'],
    what: 'The name and the version of the program differ',
    reason: 'The servers are different programs',
  },
];
