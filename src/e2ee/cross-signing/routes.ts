import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { CrossSigning, CrossSigningBody } from './cross-signing.ts';
import type { SignatureUpload } from './signature-upload.ts';

const anyObject = Type.Object({}, { additionalProperties: true });

/** The `unstable` paths are for clients that were written before the cross-signing API was stable. */
const paths = (path: string) =>
  ['v3', 'r0', 'unstable'].map((version) => `/_proto/client/${version}/keys/${path}`);

/** Maximum UTF-8 bytes of a request body. */
const bodyLimit = 1024 * 1024;

/** Returns the routes that upload cross-signing keys and signatures. Source: client-server API, "Cross-signing". */
export function crossSigningRoutes(crossSigning: CrossSigning, signatures: SignatureUpload): Route[] {
  return [
    route(
      {
        operationId: 'uploadCrossSigningKeys',
        method: 'POST',
        path: paths('device_signing/upload'),
        auth: 'user',
        body: Type.Object({
          master_key: Type.Optional(anyObject),
          self_signing_key: Type.Optional(anyObject),
          user_signing_key: Type.Optional(anyObject),
          auth: Type.Optional(Type.Unknown()),
        }),
        bodyLimit,
        response: Type.Object({}),
      },
      async ({ requester, body, ip }) => {
        await crossSigning.upload(requester, body as CrossSigningBody, ip);
        return {};
      },
    ),
    route(
      {
        operationId: 'uploadCrossSigningSignatures',
        method: 'POST',
        path: paths('signatures/upload'),
        auth: 'user',
        body: anyObject,
        bodyLimit,
        response: Type.Object({ failures: anyObject }),
      },
      async ({ requester, body }) => ({
        failures: await signatures.upload(requester.userId, body as JsonObject),
      }),
    ),
  ];
}
