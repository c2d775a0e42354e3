export { compileServerAcl, isServerAllowed, type ServerAcl } from './server-acl.ts';
