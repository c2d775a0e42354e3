/** Signs texts and verifies signatures on other threads. */
export { BackgroundSigner } from './background-signer.ts';
export { type SignatureToVerify, verifyInBackground } from './verify-in-background.ts';
