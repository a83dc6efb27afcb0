def treat(session, raw, argv):
    session.gather.add(b"-ERR not yet\r\n")
    return True
